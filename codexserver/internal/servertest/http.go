package servertest

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// HTTPClient sends requests to a program that serves MCP over HTTP, as clients of 2026-07-28 do.
type HTTPClient struct {
	// URL is the program's, without a path.
	URL string
	// Token goes with each request of MCP.
	Token string
}

// Status returns the status of the answer to a GET of a path.
func (c HTTPClient) Status(t testing.TB, path string) int {
	t.Helper()
	answer := must.Get(http.Get(c.URL + path))(t)
	answer.Body.Close()
	return answer.StatusCode
}

// Ask sends a request of a client with capabilities, which are members of an object, over a connection of its own: no
// server has just closed that. Params are members, too. The name is that of the tool or of the task in them.
func (c HTTPClient) Ask(
	ctx context.Context, capabilities, method, name, params string,
) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`,"_meta":`+Capable(capabilities)+`}}`))
	if err != nil {
		return 0, "", err
	}
	r.Close = true
	for header, value := range map[string]string{
		"Authorization": "Bearer " + c.Token, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	if id := threadArgument.FindStringSubmatch(params); id != nil {
		r.Header.Set("Mcp-Param-Thread-Id", id[1])
	}
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
