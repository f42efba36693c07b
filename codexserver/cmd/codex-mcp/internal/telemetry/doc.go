// Package telemetry records metrics and traces of codex-mcp http. A [Telemetry] observes the
// server, which does not import this package.
//
//	call            a tools/call, child of the request's traceparent
//	  └─ turn       may outlive its call
//	       ├─ model_request
//	       ├─ command
//	       └─ question
//
// Metrics are served in the text format of Prometheus. Traces are sent by OTLP over HTTP, as
// JSON. OpenTelemetry's SDK records both, but this package writes and sends them. The usual
// exporters depend on gRPC, Protocol Buffers and /proc, and their initialisation would slow
// down each start of codex-mcp, as a command or as a keeper.
//
// Labels and attributes never contain a prompt, a command, a path or a token.
package telemetry
