module hansa.dev/build/helm

go 1.25.0

require helm.sh/helm/v3 v3.21.4
