{{/* The name of the release's objects. */}}
{{- define "agent-authority.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the release's pods. */}}
{{- define "agent-authority.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agent-authority.labels" -}}
{{ include "agent-authority.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The name of the database that the chart creates. */}}
{{- define "agent-authority.database" -}}
{{ include "agent-authority.name" . }}-database
{{- end -}}

{{/* The environment variable of a setting. */}}
{{- define "agent-authority.variable" -}}
AGENT_AUTHORITY__{{ . | replace "." "__" | upper }}
{{- end -}}

{{/* The URL of a login at the database that the chart creates. */}}
{{- define "agent-authority.url" -}}
host={{ include "agent-authority.database" .root }}-rw user={{ .user }} password=$({{ .password }}) dbname=agent_authority sslmode=verify-full sslrootcert=/etc/agent-authority/database/ca.crt
{{- end -}}

{{/* The environment of a container. `owner`: whether it gets the URL of the database's owner. */}}
{{- define "agent-authority.environment" -}}
{{- $root := .root -}}
{{- range $name, $value := $root.Values.settings }}
- name: {{ include "agent-authority.variable" $name }}
  value: {{ if kindIs "string" $value }}{{ $value | quote }}{{ else }}{{ $value | toJson | quote }}{{ end }}
{{- end }}
{{- range $name, $secret := $root.Values.secrets }}
{{- if or $.owner (ne $name "database.owner_url") }}
- name: {{ include "agent-authority.variable" $name }}
  valueFrom: {secretKeyRef: {name: {{ $secret.name | quote }}, key: {{ $secret.key | quote }}}}
{{- end }}
{{- end }}
{{- if $root.Values.tls.secret }}
- {name: AGENT_AUTHORITY__TLS__CERTIFICATE_FILE, value: /etc/agent-authority/tls/tls.crt}
- {name: AGENT_AUTHORITY__TLS__KEY_FILE, value: /etc/agent-authority/tls/tls.key}
{{- end }}
{{- if $root.Values.cloudnativepg.enabled }}
- name: DATABASE_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $root.Values.cloudnativepg.loginSecret | quote }}, key: password}}
- name: AGENT_AUTHORITY__DATABASE__URL
  value: {{ include "agent-authority.url" (dict "root" $root "user" "agent_authority" "password" "DATABASE_PASSWORD") | quote }}
{{- if .owner }}
- name: DATABASE_OWNER_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $root.Values.cloudnativepg.ownerSecret | quote }}, key: password}}
- name: AGENT_AUTHORITY__DATABASE__OWNER_URL
  value: {{ include "agent-authority.url" (dict "root" $root "user" "agent_authority_owner" "password" "DATABASE_OWNER_PASSWORD") | quote }}
{{- end }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The parts of a pod that the nodes and the migration have in common. */}}
{{- define "agent-authority.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  # Files are not opened to the group at each start.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* The parts of a container that the nodes and the migration have in common. */}}
{{- define "agent-authority.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: data, mountPath: /data}
{{- if .Values.tls.secret }}
  - {name: tls, mountPath: /etc/agent-authority/tls, readOnly: true}
{{- end }}
{{- if .Values.cloudnativepg.enabled }}
  - {name: database, mountPath: /etc/agent-authority/database, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . | indent 2 }}
{{- end }}
{{- end -}}

{{/* The volumes of a pod. `data`: whether the data folder lasts only as long as the pod. */}}
{{- define "agent-authority.volumes" -}}
{{- if .data }}
- {name: data, emptyDir: {}}
{{- end }}
{{- if .root.Values.tls.secret }}
# 288 is 0440: only the pod's group reads the key.
- name: tls
  secret: {secretName: {{ .root.Values.tls.secret | quote }}, defaultMode: 288}
{{- end }}
{{- if .root.Values.cloudnativepg.enabled }}
# Only the certificate: the Secret also has the key of the database's certificate authority.
- name: database
  secret:
    secretName: {{ include "agent-authority.database" .root }}-ca
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
