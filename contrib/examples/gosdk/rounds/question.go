package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// key is the key of the question in inputRequests. A result has one question.
const key = "delete"

// ask is the first half: it returns the question for the result of the call.
func ask(q *elicit.Question, client elicit.Client) (mcp.InputRequestMap, error) {
	request, err := q.InputRequest(client, nil)
	if err != nil {
		return nil, err
	}
	var requests mcp.InputRequestMap
	err = json.Unmarshal(fmt.Appendf(nil, "{%q:%s}", key, request), &requests)
	return requests, err
}

// answer is the second half: it reads the answer in the repeated call. A missing answer
// counts as unreadable.
func answer(q *elicit.Question, responses mcp.InputResponseMap) elicit.Outcome {
	response, err := json.Marshal(responses[key])
	if err != nil {
		return q.ReadError(err, nil)
	}
	return q.ReadInputResponse(response, nil)
}

// clientOf returns what the request says about the client, or in an older version the
// handshake.
func clientOf(r *mcp.CallToolRequest) elicit.Client {
	capabilities, err := json.Marshal(r.ClientCapabilities())
	if err != nil {
		return elicit.Client{} // cannot be asked
	}
	client := elicit.Client{Capabilities: json.RawMessage(capabilities), ProtocolVersion: r.ProtocolVersion()}
	if info := r.ClientInfo(); info != nil {
		client.Name = info.Name
	}
	return client
}

// questions are the open questions by the requestState that was sent with them. The state is
// only a key of this map, so a client gains nothing if it makes one up, repeats one, or
// sends one with another branch.
type questions struct {
	mu   sync.Mutex
	open map[string]deletion
}

type deletion struct {
	branch string
	until  time.Time
}

// add opens a question and forgets the expired ones.
func (q *questions) add(branch string) (state string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = make(map[string]deletion)
	}
	now := time.Now()
	maps.DeleteFunc(q.open, func(_ string, d deletion) bool { return now.After(d.until) })
	state = rand.Text()
	q.open[state] = deletion{branch, now.Add(elicit.DefaultTimeout)}
	return state
}

// take closes a question and reports whether it was open and about that branch.
func (q *questions) take(state, branch string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	d, ok := q.open[state]
	delete(q.open, state)
	return ok && d.branch == branch && time.Now().Before(d.until)
}
