// Package telemetry records metrics and traces of codex-mcp-gateway. A [User] observes the
// server in the worker of one user, whose reports package workers replays:
//
//	front                    a tools/call at a front, child of the request's traceparent
//	  └─ node                the same at the node
//	       └─ call           the same at the worker
//	            └─ turn      may outlive its call
//	                 ├─ model_request
//	                 ├─ command
//	                 └─ question
//
// Metrics are served in the formats of Prometheus. Traces are sent by OTLP over HTTP. Both are
// OpenTelemetry's, with its own exporters.
//
// Labels and attributes never contain a prompt, a command, a path or a token.
package telemetry
