"""The whole system on one machine: rollouts of tool tasks that continue after every process was killed."""
