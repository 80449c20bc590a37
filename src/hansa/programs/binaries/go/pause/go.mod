// The process that holds a pod's namespaces open. It needs nothing but the standard library.
module hansa.dev/build/pause

go 1.25.0
