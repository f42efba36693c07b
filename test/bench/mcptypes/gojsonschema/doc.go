// Package gojsonschema has the types that go-jsonschema makes from the schema of MCP
// 2025-06-18, for comparison. They are not checked in: go generate makes them for benchmarks
// with the build tag gojsonschema.
package gojsonschema

//go:generate go tool go-jsonschema -p gojsonschema --tags json -o types.go ../../../../schema/2025-06-18/schema.json
