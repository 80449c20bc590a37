{{/* A webhook's certificate of cert-manager: (root, name of the Service) */}}
{{- define "hansa.certificate" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}
{{- $host := printf "%s.%s.svc" $name $root.Release.Namespace }}
{{- $_ := required "certManager.enabled needs the name of an issuer: set certManager.issuerRef.name" $root.Values.certManager.issuerRef.name }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "hansa.labels" $root | nindent 4 }}
spec:
  secretName: {{ $name }}-tls
  dnsNames: [{{ $host }}, {{ $host }}.cluster.local]
  issuerRef: {{- toYaml $root.Values.certManager.issuerRef | nindent 4 }}
{{ end }}

{{/* The rights of a webhook that issues and renews its certificate in a Secret: (root, name of its service account) */}}
{{- define "hansa.certificateRights" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}-certificate
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "hansa.labels" $root | nindent 4 }}
rules:
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ $name }}-tls]
  verbs: [get, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}-certificate
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "hansa.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}-certificate
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
---
# Empty: the webhook fills it. Helm does not touch what is in it.
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}-tls
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "hansa.labels" $root | nindent 4 }}
{{ end }}
