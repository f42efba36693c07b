//go:build !race

package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestLongErrors has servers whose errors are long. What they say of them is not.
func TestLongErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5<<20)
	failed := `{"resultType":"complete","isError":true,"content":[{"type":"text","text":"` + long + `"}],"structuredContent":{"status":"failed"}}`
	run := func(c *client.Client) error {
		r, err := c.Run(t.Context(), client.Task{Prompt: "p"})
		if err == nil {
			err = r.Err()
		}
		return err
	}
	task := `{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":0}`
	for name, tt := range map[string]struct {
		call, get string
		method    func(c *client.Client) error
	}{
		"a turn":            {failed, "", run},
		"a tool":            {failed, "", func(c *client.Client) error { return c.Interrupt(t.Context(), "t") }},
		"a kind of result":  {`{"resultType":"` + long + `"}`, "", run},
		"a member":          {`{"resultType":"complete","content":[],"structuredContent":{"usage":{"` + long + `":{},"turn":7}}}`, "", run},
		"a method":          {`{"resultType":"input_required","inputRequests":{"q":{"method":"` + long + `"}}}`, "", run},
		"a key":             {`{"resultType":"input_required","inputRequests":{"` + long + `":{"method":"elicitation/create"}}}`, "", run},
		"a state":           {`{"resultType":"input_required","requestState":"` + long + `"}`, "", run},
		"an id":             {`{"resultType":"task","taskId":"` + long + `"}`, "", run},
		"a status":          {task, `{"taskId":"t","status":"` + long + `"}`, run},
		"the error of one":  {task, `{"taskId":"t","status":"failed","error":{"code":1,"message":"` + long + `"}}`, run},
		"a refused request": {"refuse", "", run},
		"a refused poll":    {task, "refuse", run},
	} {
		t.Run(name, func(t *testing.T) {
			s := newToy(true)
			for method, answer := range map[string]string{"tools/call": tt.call, "tasks/get": tt.get, "tasks/cancel": "{}"} {
				s.mux.HandleRaw(method, func(context.Context, json.RawMessage) (any, error) {
					if answer == "refuse" {
						return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: long, Data: json.RawMessage(`"` + long + `"`)}
					}
					return json.RawMessage(answer), nil
				})
			}
			c := start(t, client.Options{Server: s, Ask: outcome(elicit.Approved)})
			if err := tt.method(c); err == nil || len(err.Error()) > 100<<10 {
				t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
			}
		})
	}
}
