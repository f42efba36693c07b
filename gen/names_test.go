package main

import "testing"

func TestGoName(t *testing.T) {
	for schema, want := range map[string]string{
		"tools/call": "ToolsCall", "date-time": "DateTime", "_meta": "Meta", "id": "ID", "taskIds": "TaskIDs", "TaskIDs": "TaskIDs",
		"ttlMs": "TTLMs", "websiteUrl": "WebsiteURL", "html_url": "HTMLURL", "identity": "Identity", "Apiary": "Apiary",
		"JSONRPCError": "JSONRPCError", "ElicitRequestURL": "ElicitRequestURL", "mcpServers": "MCPServers", "utf8": "UTF8", "is": "Is",
		"s": "S", "größeUri": "GrößeURI",
	} {
		if got, err := goName(schema); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", schema, got, err, want)
		}
		if again, _ := goName(want); again != want {
			t.Errorf("%s becomes %s", want, again)
		}
	}
}
