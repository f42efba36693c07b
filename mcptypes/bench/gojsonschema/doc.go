// Package gojsonschema is what go-jsonschema makes of the schema of MCP
// 2025-06-18, to compare with. Its types are not kept: go generate makes them,
// for benchmarks with the build tag gojsonschema.
package gojsonschema

//go:generate go tool go-jsonschema -p gojsonschema --tags json -o types.go ../../../schema/2025-06-18/schema.json
