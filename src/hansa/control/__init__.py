"""The controller runtime, independent of the domain: informers, queue, controllers, leader election, manager."""
