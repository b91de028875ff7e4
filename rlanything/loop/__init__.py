"""One iteration's steps: rollout -> judge -> signals -> adapt; learning itself lives in `rlanything.learn`."""
