package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An answer deletes the branch only if the question about it is open.
func TestOnlyAnOpenQuestionIsAnswered(t *testing.T) {
	repo := repository(t)
	client := connect(t, repo, "2026-07-28", &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, errors.New("unused") },
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: true},
	})
	accept := mcp.InputResponseMap{key: &mcp.ElicitResult{Action: "accept"}}
	call := func(branch, state string, responses mcp.InputResponseMap) *mcp.CallToolResult {
		t.Helper()
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "delete_branch", Arguments: arguments{branch}, RequestState: state, InputResponses: responses,
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	ask := func() string {
		t.Helper()
		// A call without a state asks, even if it has an answer.
		result := call("old", "", accept)
		if !result.NeedsInput() || result.InputRequests[key] == nil {
			t.Fatalf("got %+v", result)
		}
		return result.RequestState
	}
	const refused = "not deleted: there is no open question with this requestState"
	for _, tt := range []struct {
		name, branch, state string
		responses           mcp.InputResponseMap
		want                string
	}{
		{"made up", "old", "AAAAAAAAAAAAAAAAAAAAAAAAAA", accept, refused},
		{"another branch", "main", ask(), accept, refused},
		{"no answer", "old", ask(), nil, "not deleted: the approval answer was not understood"},
		{"another key", "old", ask(), mcp.InputResponseMap{"x": accept[key]}, "not deleted: the approval answer was not understood"},
		{"another kind", "old", ask(), mcp.InputResponseMap{key: &mcp.ListRootsResult{}}, "not deleted: the approval answer was not understood"},
	} {
		if got := textOf(call(tt.branch, tt.state, tt.responses)); got != tt.want {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}

	// Of many concurrent calls with one state, one deletes.
	state := ask()
	var racing sync.WaitGroup
	texts := make(chan string, 20)
	for range cap(texts) {
		racing.Go(func() {
			result, err := client.CallTool(t.Context(), &mcp.CallToolParams{
				Name: "delete_branch", Arguments: arguments{"old"}, RequestState: state, InputResponses: accept,
			})
			if err != nil {
				t.Error(err)
				return
			}
			texts <- textOf(result)
		})
	}
	racing.Wait()
	close(texts)
	deleted := 0
	for text := range texts {
		if strings.HasPrefix(text, "Deleted branch old") {
			deleted++
		} else if text != refused {
			t.Errorf("got %q", text)
		}
	}
	if deleted != 1 {
		t.Errorf("deleted %d times", deleted)
	}
}

func TestQuestionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q questions
		late, forgotten := q.add("old"), q.add("old")
		time.Sleep(elicit.DefaultTimeout + time.Second)
		if q.take(late, "old") {
			t.Error("a late answer was accepted")
		}
		q.add("old")
		if _, kept := q.open[forgotten]; kept {
			t.Error("an expired question is kept")
		}
	})
}
