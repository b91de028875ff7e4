"""Programming tasks: their formats, how programs are run and judged, LiveBench, and a small world to learn in."""
