// Package telemetry makes metrics and traces of what codex-mcp http does. A
// [Telemetry] is an observer of the server, which does not import this package.
//
//	call            a tools/call, child of the traceparent that came with it
//	  └─ turn       may outlive its call
//	       ├─ model_request
//	       ├─ command
//	       └─ question
//
// Metrics are read as text, as Prometheus does; traces go out by OTLP over HTTP, as
// JSON. Both are of OpenTelemetry's SDK. The ways out are this package's own, because
// the usual ones come with gRPC, Protocol Buffers and /proc, and every command of
// codex-mcp, and each start of a keeper, would pay for their initialisation.
//
// No prompt, no command, no path and no token gets into a label or an attribute.
package telemetry
