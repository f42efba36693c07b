package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// target is the collector that spans are sent to.
type target struct {
	url     string
	headers map[string]string
	timeout time.Duration // of one attempt
	gzip    bool
	json    bool           // instead of Protocol Buffers
	roots   *x509.CertPool // nil: those of the system
}

const (
	defaultTimeout = 10 * time.Second
	// firstPause is the delay before the second attempt.
	firstPause = time.Second
)

// maxCertificates bounds a file of certificates, in bytes.
const maxCertificates = 1 << 20

// SecretVariables are the environment variables that may hold a secret for the collector.
// Callers must not change it.
var SecretVariables = []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}

// readTarget reads the environment variables of OpenTelemetry's specification. It returns
// nil if they do not name an endpoint or turn traces off.
func readTarget(getenv func(string) string) (*target, error) {
	variable := func(name string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	t := &target{url: getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), headers: map[string]string{}, timeout: defaultTimeout, gzip: variable("COMPRESSION") == "gzip"}
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); t.url == "" && base != "" {
		t.url = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if t.url == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	if u, err := url.Parse(t.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: want an http or https URL")
	}
	switch protocol := variable("PROTOCOL"); protocol {
	case "", "http/protobuf":
	case "http/json":
		t.json = true
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported, want http/protobuf or http/json", protocol)
	}
	if ms := variable("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT: want a number of milliseconds")
		}
		t.timeout = time.Duration(n) * time.Millisecond
	}
	for pair := range strings.SplitSeq(variable("HEADERS"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: want NAME=VALUE,…") // no value: it may be a secret
		}
		t.headers[strings.TrimSpace(name)] = plain
	}
	if file := variable("CERTIFICATE"); file != "" {
		pem, err := safefile.Read(file, maxCertificates)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		t.roots = x509.NewCertPool()
		if !t.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate, want PEM", file)
		}
	}
	return t, nil
}

// client returns the client for the target. It does not follow redirects, because the
// headers may hold a secret.
func (t *target) client() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: t.roots}, MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, Timeout: t.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// newResource returns the description of the program in traces. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override it.
func newResource(version string) (*resource.Resource, error) {
	return resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "codex-mcp"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
}
