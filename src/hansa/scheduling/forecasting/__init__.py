"""What would happen: copies of clusters that are changed, and the decisions that would follow. Pure."""
