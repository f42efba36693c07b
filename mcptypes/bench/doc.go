// Package bench compares the types of mcptypes with those of other Go
// libraries. It is a module of its own, so that they stay out of the
// project's.
//
//	go generate ./... && go test -tags gojsonschema -bench . -count 6
//
// The messages: call, the params of tools/call with 0.9 kB; result, its result
// with two blocks and structured content; list, a tools/list of 100 tools with
// 55 kB; text, a result with one text of 1 MiB. The codecs: mcptypes by Decode
// and Encode and by either JSON package; go-sdk by encoding/json and in the way
// of its own connection; mcp-go; and, with the build tag, what go-jsonschema
// makes of the same schema.
package bench
