package servertest

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// HTTPClient calls the tools of a program that serves MCP over HTTP, as clients of
// 2026-07-28 do.
type HTTPClient struct {
	// URL is the program's, without a path.
	URL string
	// Token goes with each call.
	Token string
}

// Status returns the status of the answer to a GET of a path.
func (c HTTPClient) Status(t testing.TB, path string) int {
	t.Helper()
	answer, err := http.Get(c.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// Call sends a tools/call of a tool, with these members in its params and in its _meta.
func (c HTTPClient) Call(ctx context.Context, tool, params, meta string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`,"_meta":{`+meta+`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		return 0, "", err
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + c.Token, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(header, value)
	}
	MirrorThread(r, params)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(read), err
}

// threadArgument finds the argument that a header mirrors.
var threadArgument = regexp.MustCompile(`"arguments":{[^}]*"threadId":"([^"]*)"`)

// MirrorThread sets the header for params with a threadId, as clients do.
func MirrorThread(r *http.Request, params string) {
	if id := threadArgument.FindStringSubmatch(params); id != nil {
		r.Header.Set("Mcp-Param-Thread-Id", id[1])
	}
}
