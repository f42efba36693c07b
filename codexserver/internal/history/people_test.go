package history_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// kind is how a client talks to the server.
type kind int

const (
	withHandshake kind = iota // answers the server's requests
	withRounds                // answers in retries
	withTasks                 // polls
	kinds
)

type person struct {
	world *world
	name  string
	kind  kind
	*jsonrpc.Peer
	served chan error
	work   sync.WaitGroup // of its requests

	mu    sync.Mutex
	gone  chan struct{}
	stops []func() // of its calls
	stale []string // the params of rounds that were answered
}

// pipe is a transport whose lines a test may change.
type pipe struct {
	jsonrpc.Transport
	change func([]byte) [][]byte
}

func (p pipe) Write(ctx context.Context, lines [][]byte) error {
	var changed [][]byte
	for _, line := range lines {
		changed = append(changed, p.change(line)...)
	}
	return p.Transport.Write(ctx, changed)
}

// server is what a person connects to.
type server interface {
	Serve(ctx context.Context, t jsonrpc.Transport) error
	Exchange(ctx context.Context, t jsonrpc.Transport) error
}

func (w *world) join(s server, name string, k kind) *person {
	p := &person{world: w, name: name, kind: k, served: make(chan error, 2), gone: make(chan struct{})}
	ours, theirs := jsonrpc.Pipe()
	if w.faults.line != nil {
		ours, theirs = pipe{ours, w.faults.line}, pipe{theirs, w.faults.line}
	}
	p.Peer = jsonrpc.NewPeer(ours, p, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	go func() { p.served <- p.Run(context.Background()) }()
	go func() {
		if k == withHandshake {
			p.served <- s.Serve(context.Background(), theirs)
		} else {
			p.served <- s.Exchange(context.Background(), theirs)
		}
	}()
	if k == withHandshake {
		_ = p.Call(context.Background(), "initialize", json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}`), nil)
	}
	return p
}

// leave ends the connection without a word, and waits for what was under way.
func (p *person) leave() {
	p.world.model.Gone(p.name)
	close(p.gone)
	p.Close()
	p.work.Wait()
	<-p.served
	<-p.served
}

func (p *person) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.Method != "elicitation/create" {
		if r.IsNotification() {
			return nil, nil
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %s", r.Method)
	}
	call := callOf(r.Params)
	say, answer, after, ok := p.world.choose(call, p.name, lasts(r.Params))
	if !ok {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.world.model.Answered(call, "client", p.name, say)
	return json.RawMessage(answer), nil
}

func lasts(params json.RawMessage) bool { return strings.Contains(string(params), `"approved_always"`) }

func callOf(params json.RawMessage) string {
	var q struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var facts struct{ CallID string }
	_ = json.Unmarshal(params, &q) // a question without a call is a fault of the model
	_ = json.Unmarshal(q.Meta["codex/approval"], &facts)
	return facts.CallID
}

// tool calls a tool and answers its questions, without waiting for its end.
func (p *person) tool(request, turn, name string, arguments map[string]any) {
	ctx, stop := context.WithCancel(context.Background())
	p.mu.Lock()
	p.stops = append(p.stops, func() { p.world.model.Excused(request); stop() })
	p.mu.Unlock()
	p.world.model.Sent(request, p.name, turn)
	p.work.Go(func() {
		defer stop()
		text := p.rounds(ctx, name, arguments)
		if ctx.Err() == nil {
			p.world.model.Returned(request, text)
		}
	})
}

type message struct {
	ResultType, RequestState, TaskID, Status string
	InputRequests                            map[string]struct{ Params json.RawMessage }
	PollIntervalMs                           int
}

func (p *person) rounds(ctx context.Context, name string, arguments map[string]any) string {
	params := map[string]any{"name": name, "arguments": arguments}
	for {
		raw, m, err := p.send(ctx, "tools/call", params)
		switch {
		case err != nil:
			return err.Error()
		case m.ResultType == "task":
			return p.poll(ctx, m.TaskID)
		case m.ResultType != "input_required":
			return raw
		}
		answers, ok := p.answer(ctx, m)
		if !ok {
			return "gone"
		}
		params = map[string]any{"name": name, "arguments": arguments, "requestState": m.RequestState, "inputResponses": answers}
		text, _ := json.Marshal(p.params(params))
		p.mu.Lock()
		p.stale = append(p.stale, string(text))
		p.mu.Unlock()
	}
}

func (p *person) poll(ctx context.Context, task string) string {
	for {
		raw, m, err := p.send(ctx, "tasks/get", map[string]any{"taskId": task})
		switch {
		case err != nil:
			return err.Error()
		case m.Status != "working" && m.Status != "input_required":
			return raw
		case m.Status == "input_required":
			answers, ok := p.answer(ctx, m)
			if !ok {
				return "gone"
			}
			if _, _, err := p.send(ctx, "tasks/update", map[string]any{"taskId": task, "inputResponses": answers}); err != nil {
				return err.Error()
			}
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return "gone"
		case <-p.gone:
			return "gone"
		}
	}
}

func (p *person) params(params map[string]any) map[string]any {
	if p.kind != withHandshake {
		capabilities := `{"elicitation":{}}`
		if p.kind == withTasks {
			capabilities = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		}
		params["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`)
	}
	return params
}

func (p *person) send(ctx context.Context, method string, params map[string]any) (string, message, error) {
	var raw json.RawMessage
	var m message
	err := p.Call(ctx, method, p.params(params), &raw)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	return string(raw), m, err
}

// answer answers the open questions, at the time of the first answer. A person who does not
// answer does that for half an hour.
func (p *person) answer(ctx context.Context, m message) (map[string]json.RawMessage, bool) {
	type reply struct {
		key, call, text string
		say             history.Say
		after           time.Duration
	}
	var all []reply
	wait := 30 * time.Minute
	for _, key := range slices.Sorted(maps.Keys(m.InputRequests)) {
		call := callOf(m.InputRequests[key].Params)
		say, text, after, ok := p.world.choose(call, p.name, lasts(m.InputRequests[key].Params))
		if !ok {
			continue
		}
		all = append(all, reply{key, call, text, say, after})
		wait = min(wait, after)
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, false
	case <-p.gone:
		return nil, false
	}
	answers := map[string]json.RawMessage{}
	for _, r := range all {
		if r.after > wait || !json.Valid([]byte(r.text)) {
			continue
		}
		answers[r.key] = json.RawMessage(r.text)
		p.world.model.Answered(r.call, "client", p.name, r.say)
		if p.world.faults.answered != nil {
			p.world.faults.answered(p.world, r.call)
		}
	}
	return answers, true
}

// again sends a round that was answered before.
func (p *person) again(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stale) == 0 {
		return
	}
	params := p.stale[n%len(p.stale)]
	p.work.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), 3*time.Hour)
		defer stop()
		_ = p.Call(ctx, "tools/call", json.RawMessage(params), nil) // refused, or asked again
	})
}

func (p *person) cancel(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stops) > 0 {
		p.stops[n%len(p.stops)]()
	}
}
