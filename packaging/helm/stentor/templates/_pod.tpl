{{/* A pod with a server: root, roles (none for all), labels beside the chart's, and isEphemeral where it has no volume. */}}
{{- define "stentor.pod" -}}
metadata:
  labels:
    {{- include "stentor.labels" .root | nindent 4 }}
    {{- range .labels }}
    stentor.io/{{ . }}: "yes"
    {{- end }}
  annotations:
    checksum/config: {{ .root.Values.config | sha256sum }}
spec:
  terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
  automountServiceAccountToken: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: stentor
      image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        - serve
        - --config=/etc/stentor/stentor.toml
        {{- with .roles }}
        - --role={{ join "," . }}
        {{- end }}
      env:
        # A directory below the volume's own, which the server keeps for itself alone.
        - name: STENTOR__DATA_DIR
          value: /data/stentor
        - name: STENTOR__API__LISTEN
          value: 0.0.0.0:8686
        {{- with .root.Values.queue.engine }}
        - name: STENTOR__QUEUE__ENGINE
          value: {{ . }}
        {{- end }}
        {{- if .root.Values.queue.urlSecret.name }}
        - name: STENTOR__QUEUE__URL_FILE
          value: /run/secrets/stentor/queue/{{ .root.Values.queue.urlSecret.key }}
        {{- end }}
        {{- if .root.Values.sharedSecret }}
        - name: STENTOR__SECRETS__SHARED_DIR
          value: /run/secrets/stentor/shared
        {{- end }}
        {{- if (eq .root.Values.store.engine "postgres") }}
        - name: STENTOR__STORE__ENGINE
          value: postgres
        - name: STENTOR__STORE__URL_FILE
          value: /run/secrets/stentor/store/{{ .root.Values.store.urlSecret.key }}
        {{- end }}
        {{- if .root.Values.sealKeySecret.name }}
        - name: STENTOR__SECRETS__KEY_FILE
          value: /run/secrets/stentor/seal/{{ .root.Values.sealKeySecret.key }}
        {{- end }}
        {{- if .root.Values.rootKeySecret.name }}
        - name: STENTOR__API__ROOT_KEY_FILE
          value: /run/secrets/stentor/root/{{ .root.Values.rootKeySecret.key }}
        {{- end }}
        {{- if .root.Values.tlsSecret }}
        - name: STENTOR__API__TLS_CERT_FILE
          value: /run/secrets/stentor/tls/tls.crt
        - name: STENTOR__API__TLS_KEY_FILE
          value: /run/secrets/stentor/tls/tls.key
        {{- end }}
      ports:
        - name: api
          containerPort: 8686
      {{- $scheme := ternary "HTTPS" "HTTP" (not (empty .root.Values.tlsSecret)) }}
      # A start after a crash takes back what was in flight, over millions of devices.
      startupProbe:
        httpGet: {path: /healthz, port: api, scheme: {{ $scheme }}}
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: /healthz, port: api, scheme: {{ $scheme }}}
        periodSeconds: 10
      readinessProbe:
        httpGet: {path: /readyz, port: api, scheme: {{ $scheme }}}
        periodSeconds: 5
      resources:
        {{- toYaml .root.Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: data
          mountPath: /data
        - name: config
          mountPath: /etc/stentor
          readOnly: true
        {{- if (eq .root.Values.store.engine "postgres") }}
        - name: store
          mountPath: /run/secrets/stentor/store
          readOnly: true
        {{- end }}
        {{- if .root.Values.queue.urlSecret.name }}
        - name: queue
          mountPath: /run/secrets/stentor/queue
          readOnly: true
        {{- end }}
        {{- if .root.Values.sharedSecret }}
        - name: shared
          mountPath: /run/secrets/stentor/shared
          readOnly: true
        {{- end }}
        {{- if .root.Values.sealKeySecret.name }}
        - name: seal
          mountPath: /run/secrets/stentor/seal
          readOnly: true
        {{- end }}
        {{- if .root.Values.rootKeySecret.name }}
        - name: root
          mountPath: /run/secrets/stentor/root
          readOnly: true
        {{- end }}
        {{- if .root.Values.tlsSecret }}
        - name: tls
          mountPath: /run/secrets/stentor/tls
          readOnly: true
        {{- end }}
  volumes:
    {{- if .isEphemeral }}
    # What a server holds is in the database and in the secrets: a new pod is a new server.
    - name: data
      emptyDir: {}
    {{- end }}
    - name: config
      configMap:
        name: {{ include "stentor.name" .root }}
    {{- if (eq .root.Values.store.engine "postgres") }}
    - name: store
      secret:
        secretName: {{ .root.Values.store.urlSecret.name }}
        defaultMode: 0440
    {{- end }}
    {{- if .root.Values.queue.urlSecret.name }}
    - name: queue
      secret:
        secretName: {{ .root.Values.queue.urlSecret.name }}
        defaultMode: 0440
    {{- end }}
    {{- if .root.Values.sharedSecret }}
    - name: shared
      secret:
        secretName: {{ .root.Values.sharedSecret }}
        defaultMode: 0440
    {{- end }}
    {{- if .root.Values.sealKeySecret.name }}
    - name: seal
      secret:
        secretName: {{ .root.Values.sealKeySecret.name }}
        defaultMode: 0440
    {{- end }}
    {{- if .root.Values.rootKeySecret.name }}
    - name: root
      secret:
        secretName: {{ .root.Values.rootKeySecret.name }}
        defaultMode: 0440
    {{- end }}
    {{- if .root.Values.tlsSecret }}
    - name: tls
      secret:
        secretName: {{ .root.Values.tlsSecret }}
        defaultMode: 0440
    {{- end }}
{{- end -}}
