"""The controller machine, without a word of the domain: informers, queue, controllers, manager."""
