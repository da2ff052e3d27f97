{{- define "whycrash.name" -}}
{{- if contains "whycrash" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-whycrash{{ end }}
{{- end }}

{{- define "whycrash.selector" -}}
app.kubernetes.io/name: whycrash
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "whycrash.labels" -}}
{{ include "whycrash.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "whycrash.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Several servers share a database and a home; one alone may have SQLite in its own. */ -}}
{{- define "whycrash.check" -}}
{{- $most := .Values.server.replicas | int }}
{{- if .Values.server.autoscaling.enabled }}{{ $most = .Values.server.autoscaling.maxReplicas | int }}{{ end }}
{{- if or (gt $most 1) (gt (.Values.workers.replicas | int) 0) .Values.workers.autoscaling.enabled }}
{{- if not (hasKey .Values.secrets "WHYCRASH_DATABASE") }}
{{- fail "several servers need one database: secrets.WHYCRASH_DATABASE" }}
{{- end }}
{{- if and (not .Values.home.existingClaim) (ne .Values.home.accessMode "ReadWriteMany") }}
{{- fail "several servers need one home that all can write to: home.accessMode=ReadWriteMany, or home.existingClaim" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "whycrash.environment" -}}
- {name: WHYCRASH_HOME, value: /var/lib/whycrash}
- {name: WHYCRASH_HOST, value: 0.0.0.0}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $secret := .Values.secrets }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $secret.name }}, key: {{ $secret.key | quote }}}}
{{- end }}
{{- end }}

{{- define "whycrash.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "whycrash.mounts" -}}
- {name: home, mountPath: /var/lib/whycrash}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- /* The pods of servers and of workers differ in their size and their component's name. */ -}}
{{- define "whycrash.pod" -}}
{{- $ := .root }}
metadata:
  labels:
    {{- include "whycrash.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  {{- with $.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "whycrash.name" $ }}
  # Nothing here asks the cluster's API.
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  # Longer than the server takes to give back what it works on.
  terminationGracePeriodSeconds: 60
  initContainers:
    # A server that others can reach ends where there is no key. The first one is made in here, see the notes.
    - name: key
      image: {{ include "whycrash.image" $ }}
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      command: [sh, -c, "until whycrash keys list > /tmp/keys && ! grep -q '^There is no key' /tmp/keys; do sleep 5; done"]
      env:
        {{- include "whycrash.environment" $ | nindent 8 }}
      securityContext:
        {{- include "whycrash.confined" $ | nindent 8 }}
      resources:
        requests: {cpu: 50m, memory: 256Mi}
        limits: {memory: 1Gi}
      volumeMounts:
        {{- include "whycrash.mounts" $ | nindent 8 }}
  containers:
    - name: whycrash
      image: {{ include "whycrash.image" $ }}
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      args: [serve]
      env:
        {{- include "whycrash.environment" $ | nindent 8 }}
      ports:
        - {name: http, containerPort: 8642}
      securityContext:
        {{- include "whycrash.confined" $ | nindent 8 }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        failureThreshold: {{ div $.Values.probes.startupSeconds 5 }}
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 20
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      lifecycle:
        # Requests still come until every node knows that this pod is leaving.
        preStop: {exec: {command: [sleep, "5"]}}
      volumeMounts:
        {{- include "whycrash.mounts" $ | nindent 8 }}
  volumes:
    - name: home
      persistentVolumeClaim:
        claimName: {{ $.Values.home.existingClaim | default (include "whycrash.name" $) }}
    - name: tmp
      emptyDir: {sizeLimit: 20Gi}
  {{- with $.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
