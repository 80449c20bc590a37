{{/*
A component: its Deployment or DaemonSet, PodDisruptionBudget, NetworkPolicy, Service and ServiceMonitor. Fields:
  root, name         the release, and the name of the component and its service account
  values             overrides of .Values.defaults
  args               command and flags
  kind               Deployment (default), or DaemonSet, which is on the network of its node
  ports              [{name, port, target}] that a Service offers, and that any client may call
  openPorts          [{port, endPort}] that any client may call directly
  env, mounts, volumes, initContainers, containers   as in a pod
*/}}
{{- define "hansa.component" -}}
{{- $root := .root }}
{{- $values := mergeOverwrite (deepCopy $root.Values.defaults) (.values | default dict) }}
{{- $kind := .kind | default "Deployment" }}
{{- $labels := merge (include "hansa.selector" (list $root .name) | fromYaml) (include "hansa.labels" $root | fromYaml) }}
{{- $selector := include "hansa.selector" (list $root .name) | fromYaml }}
{{- $metrics := ternary 10551 8080 (eq $kind "DaemonSet") }}
---
apiVersion: apps/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- toYaml $labels | nindent 4 }}
spec:
  {{- if eq $kind "Deployment" }}
  replicas: {{ $values.replicas }}
  {{- end }}
  selector:
    matchLabels: {{- toYaml $selector | nindent 6 }}
  template:
    metadata:
      labels: {{- toYaml (merge (deepCopy $selector) $values.podLabels) | nindent 8 }}
      {{- $annotations := merge (.podAnnotations | default dict) $values.podAnnotations }}
      {{- with $annotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      priorityClassName: {{ $values.priorityClassName }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets: {{- range . }}{{ printf "\n- name: %s" . | indent 6 }}{{ end }}
      {{- end }}
      {{- if eq $kind "DaemonSet" }}
      hostNetwork: true # API servers of tenants call it at the address of the node
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      {{- with .initContainers }}
      initContainers: {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
      - name: {{ .name }}
        image: {{ include "hansa.image" $root }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        args: {{- range .args }}
        - {{ . | quote }}
        {{- end }}
        {{- range $values.args }}
        - {{ . | quote }}
        {{- end }}
        - --metrics-addr={{ ternary "127.0.0.1" "0.0.0.0" (eq $kind "DaemonSet") }}:{{ $metrics }}
        - --log-level={{ $root.Values.log.level }}
        - --log-format={{ $root.Values.log.format }}
        {{- with .env }}
        env: {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - {name: metrics, containerPort: {{ $metrics }}}
        {{- range .ports }}
        - {name: {{ .name }}, containerPort: {{ .target }}}
        {{- end }}
        startupProbe:
          httpGet: {{ include "hansa.probe" (list $kind "/healthz" $metrics) }}
          periodSeconds: 1
          failureThreshold: 60
        readinessProbe:
          httpGet: {{ include "hansa.probe" (list $kind "/readyz" $metrics) }}
          periodSeconds: 5
          timeoutSeconds: 5
        livenessProbe:
          httpGet: {{ include "hansa.probe" (list $kind "/healthz" $metrics) }}
          timeoutSeconds: 10
        resources: {{- toYaml $values.resources | nindent 10 }}
        securityContext: {{- include "hansa.unprivileged" . | nindent 10 }}
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- with .mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .containers }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      volumes:
      - name: tmp
        emptyDir: {medium: Memory, sizeLimit: 16Mi}
      {{- with .volumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- if eq $kind "Deployment" }}
      {{- with $values.affinity | default (include "hansa.apart" (list $root .name) | fromYaml) }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels: {{- toYaml $selector | nindent 12 }}
      {{- end }}
{{- if and (eq $kind "Deployment") (gt (int $values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- toYaml $labels | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- toYaml $selector | nindent 6 }}
{{- end }}
{{- if $root.Values.networkPolicy.enabled }}
---
# Metrics name tenants. The kubelet's probes need no rule.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- toYaml $labels | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- toYaml $selector | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - namespaceSelector: {{- toYaml $root.Values.networkPolicy.metricsFrom | nindent 8 }}
    ports: [{port: {{ $metrics }}}]
  {{- if or .ports .openPorts }}
  - ports: # callers have any address
    {{- range .ports }}
    - {port: {{ .target }}}
    {{- end }}
    {{- range .openPorts }}
    - {port: {{ .port }}, endPort: {{ .endPort }}}
    {{- end }}
  {{- end }}
  egress: {{- toYaml $root.Values.networkPolicy.egress | nindent 2 }}
{{- end }}
{{- with .ports }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $.name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- toYaml $labels | nindent 4 }}
spec:
  selector: {{- toYaml $selector | nindent 4 }}
  ports:
  {{- range . }}
  - {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .target }}}
  {{- end }}
{{- end }}
{{- if and $root.Values.metrics.serviceMonitor.enabled (eq $kind "Deployment") }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-metrics
  namespace: {{ $root.Release.Namespace }}
  labels: {{- toYaml $labels | nindent 4 }}
spec:
  clusterIP: None
  selector: {{- toYaml $selector | nindent 4 }}
  ports:
  - {name: metrics, port: {{ $metrics }}, targetPort: metrics}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- toYaml (merge (deepCopy $labels) $root.Values.metrics.serviceMonitor.labels) | nindent 4 }}
spec:
  selector:
    matchLabels: {{- toYaml $selector | nindent 6 }}
  endpoints:
  - {port: metrics, interval: {{ $root.Values.metrics.serviceMonitor.interval }}}
{{- end }}
{{ end }}

{{/* A probe's request: (kind of the workload, path, port) */}}
{{- define "hansa.probe" -}}
{ {{- if eq (index . 0) "DaemonSet" }}host: 127.0.0.1, {{ end }}path: {{ index . 1 }}, port: {{ index . 2 }}}
{{- end }}

{{- define "hansa.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Replicas of a component on several nodes, if there are: (root, name) */}}
{{- define "hansa.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels: {{- include "hansa.selector" . | nindent 10 }}
{{- end }}

{{/* The flags of leader election. */}}
{{- define "hansa.elect" -}}
[--leader-elect, "--leader-elect-namespace={{ .Release.Namespace }}"]
{{- end }}
