"""Progress of a stage at work, in the terminal that started it: a line for each seed that is updated, not a scroll.

The stage itself prints plain lines. What it prints is taken here, and the last line of each kind is shown in place;
where a run is inside its iterations is read from disk, as `rlanything watch` does. Without a terminal nothing is taken.
"""
