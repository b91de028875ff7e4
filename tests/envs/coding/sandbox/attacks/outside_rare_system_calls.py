# right: ok
page = ctypes.create_string_buffer(4096)
for x86, arm in (
    (321, 280),
    (298, 241),
    (323, 282),
    (425, 425),
    (300, 262),
    (304, 265),
    (312, 272),
    (175, 105),
    (313, 273),
    (246, 104),
    (320, 294),
    (167, 224),
    (103, 116),
    (279, 239),
    (256, 238),
):
    refused(system, x86, arm, page, page, page, page, page, page)
print("contained")
