package main

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// rounds are the calls that were answered with questions and may be repeated, by
// the requestState that went out with the questions. The state means nothing
// outside of this memory and is good for one repetition.
type rounds struct {
	mu   sync.Mutex
	open map[string]round
}

type round struct {
	call    string // what was called with which arguments
	asked   modern.InputRequests
	answers map[string]json.RawMessage // to the rounds before
	until   time.Time
}

// add opens a round, and forgets those that no client came back for.
func (r *rounds) add(o round) (state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[string]round)
	}
	now := time.Now()
	maps.DeleteFunc(r.open, func(_ string, o round) bool { return now.After(o.until) })
	o.until = now.Add(elicit.DefaultTimeout)
	state = rand.Text()
	r.open[state] = o
	return state
}

// take closes a round and returns all answers so far. A response whose key was
// not asked is ignored, a key without a response stays unanswered.
func (r *rounds) take(state, call string, responses map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	r.mu.Lock()
	o, ok := r.open[state]
	delete(r.open, state)
	r.mu.Unlock()
	if !ok || time.Now().After(o.until) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/requestState: no such round is open")
	}
	if o.call != call {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/requestState: it belongs to another call")
	}
	answers := map[string]json.RawMessage{}
	maps.Copy(answers, o.answers)
	for key := range o.asked {
		if response, ok := responses[key]; ok {
			answers[key] = response
		}
	}
	return answers, nil
}
