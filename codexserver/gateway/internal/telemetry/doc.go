// Package telemetry records metrics and traces of codex-mcp-gateway. A [User] observes the
// server in the worker of one user, whose reports package workers replays:
//
//	call            a tools/call, child of the request's traceparent
//	  └─ turn       may outlive its call
//	       ├─ model_request
//	       ├─ command
//	       └─ question
//
// Metrics are served in the formats of Prometheus. Traces are sent by OTLP over HTTP. Both are
// OpenTelemetry's, with its own exporters.
//
// Labels and attributes never contain a prompt, a command, a path or a token.
package telemetry
