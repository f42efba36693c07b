// Package bench compares the types of mcptypes with those of other Go
// libraries. It is a module of its own, so that they stay out of the project's.
//
//	go test -bench . -count 6
//
// The messages: call, the params of tools/call with 0.9 kB; result, its result
// with two blocks and structured content; list, a tools/list of 100 tools with
// 55 kB; text, a result with one text of 1 MiB. The codecs: mcptypes by Decode
// and Encode and by either JSON package; go-sdk by encoding/json and in the way
// of its own connection; mcp-go; and what go-jsonschema makes of the same
// schema, in the folder gojsonschema (in the project's own folder: go run
// github.com/atombender/go-jsonschema -p gojsonschema --tags json -o
// mcptypes/bench/gojsonschema/types.go schema/2025-06-18/schema.json).
package bench
