"""The adaptation check: what the rewrites of finished runs did to the tasks, measured on fresh rollouts."""
