"""Tasks on web pages: MiniWoB++ in a real headless Chromium, read as text or seen as pictures. See docs/gui.md.

`browser` plays episodes in pages, `play` is an episode as an agent meets it, `kinds` describes the kinds of tasks,
`teacher` has the expert and the labels of steps, and `tasks` draws and rewrites tasks. What an agent can do is in
`envs.computer`.
"""
