{{- define "stentor.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "stentor.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stentor.check" -}}
{{- if and (eq .Values.store.engine "postgres") (not .Values.store.urlSecret.name) }}
{{- fail "store.engine is postgres: store.urlSecret.name must name a Secret with the URL of the database" }}
{{- end }}
{{- if and (eq .Values.queue.engine "nats") (not .Values.queue.urlSecret.name) }}
{{- fail "queue.engine is nats: queue.urlSecret.name must name a Secret with the URL of NATS" }}
{{- end }}
{{- if .Values.nodes }}
{{- if ne .Values.store.engine "postgres" }}
{{- fail "nodes share a database: store.engine must be postgres" }}
{{- end }}
{{- if not (has .Values.queue.engine (list "postgres" "nats")) }}
{{- fail "nodes share a queue: queue.engine must be postgres or nats" }}
{{- end }}
{{- if not .Values.sharedSecret }}
{{- fail "nodes have their secrets alike: sharedSecret must name a Secret with key.pepper, root.key, seal.key and service.key" }}
{{- end }}
{{- end }}
{{- end -}}
