"""The super cluster pool: joining and leaving it, and the fence that keeps a pod from running twice."""
