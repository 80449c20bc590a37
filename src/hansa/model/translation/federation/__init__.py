"""Pure translations between proxy pods of a source cluster and delegate pods of target clusters."""
