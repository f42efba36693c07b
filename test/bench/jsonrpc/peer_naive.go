package main

import (
	"bufio"
	"encoding/json"
	"sync"
)

// naivePeer is the simplest program that works if nothing fails: one goroutine that reads,
// handles and writes, with encoding/json for everything. It matches answers by order and
// ignores ids. Nothing runs concurrently or can be cancelled, and a handler that waits blocks
// everything.
var naivePeer = &peer{name: "naive", tools: naiveTools, serve: serveNaive, dial: dialNaive}

type naiveMessage struct {
	Version string          `json:"jsonrpc"`
	ID      *int64          `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

type naiveStream struct {
	s *stream
	r *bufio.Reader
}

func newNaive(s *stream) naiveStream { return naiveStream{s, bufio.NewReaderSize(s, 64<<10)} }

func (n naiveStream) read() (m naiveMessage, err error) {
	line, err := readLine(n.r)
	if err == nil {
		check(json.Unmarshal(line, &m))
	}
	return m, err
}

func (n naiveStream) write(m naiveMessage) {
	m.Version = "2.0"
	must(n.s.Write(append(must(json.Marshal(m)), '\n')))
}

func serveNaive(s *stream) {
	n := newNaive(s)
	count := 0
	for {
		m, err := n.read()
		if err != nil {
			return
		}
		if m.Method == "notifications/progress" {
			var p progress
			check(json.Unmarshal(m.Params, &p))
			count++
			continue
		}
		var p callParams
		check(json.Unmarshal(m.Params, &p))
		text := p.Arguments.Text
		if p.Name == "ask" {
			n.write(naiveMessage{ID: m.ID, Method: "elicitation/create", Params: must(json.Marshal(question{text}))})
			var d decision
			check(json.Unmarshal(must(n.read()).Result, &d))
			text = d.Action
		}
		n.write(naiveMessage{ID: m.ID, Result: must(json.Marshal(result(text)))})
	}
}

type naiveClient struct {
	naiveStream
	order sync.Mutex // held while writing, so that the queue has the order of the answers
	mu    sync.Mutex
	next  int64
	queue []chan json.RawMessage
}

func dialNaive(s *stream) caller {
	c := &naiveClient{naiveStream: newNaive(s)}
	go func() {
		for {
			m, err := c.read()
			if err != nil {
				return
			}
			if m.Method != "" {
				var q question
				check(json.Unmarshal(m.Params, &q))
				c.write(naiveMessage{ID: m.ID, Result: must(json.Marshal(decision{"accept"}))})
				continue
			}
			c.mu.Lock()
			ch := c.queue[0]
			c.queue = c.queue[1:]
			c.mu.Unlock()
			ch <- m.Result
		}
	}()
	return c
}

func (c *naiveClient) call(p callParams) (string, error) {
	ch := make(chan json.RawMessage, 1)
	params := must(json.Marshal(p))
	c.order.Lock()
	c.mu.Lock()
	c.next++
	id := c.next
	c.queue = append(c.queue, ch)
	c.mu.Unlock()
	c.write(naiveMessage{ID: &id, Method: "tools/call", Params: params})
	c.order.Unlock()
	var r callResult
	if err := json.Unmarshal(<-ch, &r); err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func (c *naiveClient) echo(text string) (string, error) { return c.call(call("echo", text, 0)) }

func (c *naiveClient) ask(text string) error {
	_, err := c.call(call("ask", text, 0))
	return err
}

func (c *naiveClient) notify(text string) error {
	c.write(naiveMessage{Method: "notifications/progress", Params: must(json.Marshal(progress{"p", 1, text}))})
	return nil
}

func (c *naiveClient) counted(n int) error {
	_, err := c.call(call("count", "", n))
	return err
}
