//go:build gojsonschema

package bench_test

import "github.com/codexmcp/codexmcp/test/bench/mcptypes/gojsonschema"

var goJSONSchema = map[string]func() any{
	"CallToolRequestParams": func() any { return new(gojsonschema.CallToolRequestParams) },
	"CallToolResult":        func() any { return new(gojsonschema.CallToolResult) },
	"ListToolsResult":       func() any { return new(gojsonschema.ListToolsResult) },
}
