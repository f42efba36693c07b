package elicit_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// A line is one message as the client gets it.
type line struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// connect runs a peer over a pipe within a synctest bubble and returns an
// Asker on it with the client's end.
func connect(t *testing.T, o *elicit.Options) (*elicit.Asker, jsonrpc.Transport) {
	ours, client := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(ours, nil, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = peer.Run(context.Background()) // the error of the client's hanging up does not matter here
	})
	t.Cleanup(func() {
		_ = client.Close()
		wg.Wait()
	})
	return elicit.NewAsker(peer, able, o), client
}

func receive(t *testing.T, client jsonrpc.Transport) line {
	t.Helper()
	raw, err := client.Read(t.Context())
	must(t, err)
	var l line
	must(t, json.Unmarshal(raw, &l))
	return l
}

// answer writes an answer; members is what follows the id.
func answer(t *testing.T, client jsonrpc.Transport, id, members string) {
	t.Helper()
	must(t, client.Write(t.Context(), [][]byte{[]byte(`{"jsonrpc":"2.0","id":` + id + `,` + members + `}`)}))
}

// begin asks in the background and returns a channel for the outcome.
func begin(ctx context.Context, a *elicit.Asker, q *elicit.Question) <-chan elicit.Outcome {
	out := make(chan elicit.Outcome, 1)
	go func() { out <- a.Ask(ctx, q) }()
	return out
}

// Nothing that is not an answer to the question may approve it. An error says why, if it has a code.
func TestWire(t *testing.T) {
	const yes = `"result":{"action":"accept"}`
	const unshown = "the client could not show the approval request"
	for _, tt := range []struct {
		name, id, members string
		want              elicit.Decision
		model             string // "" for any words
	}{
		{"an approval", `0`, yes, approved, ""},
		{"a refusal", `0`, `"result":{"action":"decline","content":{"feedback":"use make"}}`, denied, "declined: use make"},
		{"a result that is none", `0`, `"result":[]`, denied, "the approval answer was not understood"},
		{"the id as a string", `"0"`, yes, denied, ""},
		{"another id", `1`, yes, denied, ""},
		{"no id", `null`, yes, denied, ""},
		{"both a result and an error", `0`, yes + `,"error":{"code":1,"message":"x"}`, denied, ""},
		{"two results", `0`, yes + `,` + yes, denied, ""},
		{"two ids", `1,"id":0`, yes, denied, ""},
		{"a request of theirs", `0`, `"method":"elicitation/create",` + yes, denied, ""},
		{"no such method", `0`, `"error":{"code":-32601,"message":"Method not found"}`, denied, unshown + " (-32601)"},
		{"no handler", `0`, `"error":{"code":-32602,"message":"no handler"}`, denied, unshown + " (-32602)"},
		{"code 0", `0`, `"error":{"code":0,"message":"thrown"}`, denied, unshown},
		{"no code", `0`, `"error":{"message":"no code"}`, denied, unshown},
		{"an error of text", `0`, `"error":"Method not found"`, denied, unshown},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, client := connect(t, nil)
			out := begin(t.Context(), a, &elicit.Question{Message: "Sure?"})
			asked := receive(t, client)
			if asked.Method != "elicitation/create" || !strings.Contains(string(asked.Params), `"message":"Sure?"`) {
				t.Errorf("asked %s %s", asked.Method, asked.Params)
			}
			answer(t, client, tt.id, tt.members)
			got := <-out
			if got.Decision != tt.want || tt.model != "" && got.ForModel() != tt.model || strings.HasPrefix(tt.model, unshown) && got.ForCaller() == "" {
				t.Errorf("%s: %+v", tt.name, got)
			}
		})
	}
}

// A question that times out is cancelled, and a late answer to it is ignored.
func TestWireTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := connect(t, &elicit.Options{Timeout: 2 * time.Second})
		out := begin(t.Context(), a, new(elicit.Question))
		asked := receive(t, client)
		if got := <-out; got.Decision != denied || got.ForModel() != "no answer within 2 s" {
			t.Errorf("%+v", got)
		}
		told := receive(t, client)
		var params struct{ RequestID json.RawMessage }
		if err := json.Unmarshal(told.Params, &params); err != nil || told.Method != "notifications/cancelled" || string(params.RequestID) != string(asked.ID) {
			t.Errorf("%s %s for the question %s", told.Method, told.Params, asked.ID)
		}
		out = begin(t.Context(), a, new(elicit.Question))
		next := receive(t, client)
		answer(t, client, string(asked.ID), `"result":{"action":"accept"}`)
		synctest.Wait()
		answer(t, client, string(next.ID), `"result":{"action":"decline"}`)
		if got := <-out; got.Decision != denied || got.Reason != "declined" {
			t.Errorf("%+v", got)
		}
	})
}

func TestWireClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := connect(t, nil)
		out := begin(t.Context(), a, new(elicit.Question))
		receive(t, client)
		must(t, client.Close())
		for _, got := range []elicit.Outcome{<-out, a.Ask(t.Context(), new(elicit.Question))} {
			if got.Decision != abort || got.Reason != "peer_gone" {
				t.Errorf("%+v", got)
			}
		}
	})
}
