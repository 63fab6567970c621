"""The main job on one machine: rollouts of tool tasks that survive the death of every process."""
