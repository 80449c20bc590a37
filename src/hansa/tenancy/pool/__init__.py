"""The super cluster pool: joining and leaving it, and the fence that prevents a pod from running twice."""
