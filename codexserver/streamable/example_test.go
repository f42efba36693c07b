package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
)

func Example() {
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: "you said " + in[0].Text})
		return nil
	})
	handler, err := streamable.New(codexserver.New(e, nil), &streamable.Options{
		Authenticate: func(r *http.Request) (string, error) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				return "", errors.New("unknown token")
			}
			return "ann", nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	server := httptest.NewServer(handler)
	defer server.Close()

	for _, token := range []string{"guess", "secret"} {
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, answer.Header.Get("Mcp-Session-Id") != "")
	}
	// Output:
	// 401 false
	// 200 true
}
