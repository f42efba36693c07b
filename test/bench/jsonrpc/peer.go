package main

import "sync"

// peer is one package under test.
type peer struct {
	name  string
	serve func(*stream)
	dial  func(*stream) caller
	tools func(*stream) // serves the cases of jsonrpc/testdata; nil for one that does as another peer does
}

var peers = []*peer{
	rawPeer, naivePeer, oursPeer, linesPeer, inlinePeer,
	lspdevPeer, lspdevInlinePeer, jrpc2Peer, sourcegraphPeer, xexpPeer, gosdkPeer, mcpgoPeer,
}

// other reports whether p is another package.
func (p *peer) other() bool {
	return p != rawPeer && p != naivePeer && p != oursPeer && p != linesPeer && p != inlinePeer
}

// inlineMode ends the name of a peer that handles short requests on the goroutine that reads.
const inlineMode = " inline"

// caller is the calling end of a connection.
type caller interface {
	echo(text string) (string, error)
	ask(text string) error    // the handler calls elicitation/create
	notify(text string) error // notifications/progress
	counted(n int) error      // returns when the server has handled n more notifications
}

// These are the messages as plain types. The MCP SDKs use their own.
type (
	callParams struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	}
	arguments struct {
		Text  string `json:"text"`
		Count int    `json:"count"`
	}
	content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	callResult struct {
		Content []content `json:"content"`
	}
	progress struct {
		Token    string  `json:"progressToken"`
		Progress float64 `json:"progress"`
		Message  string  `json:"message"`
	}
	question struct {
		Message string `json:"message"`
	}
	decision struct {
		Action string `json:"action"`
	}
)

func call(name, text string, n int) callParams {
	return callParams{Name: name, Arguments: arguments{Text: text, Count: n}}
}

func result(text string) callResult { return callResult{[]content{{"text", text}}} }

// counter counts the notifications that the server has handled.
type counter struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
}

func newCounter() *counter {
	c := new(counter)
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *counter) add() {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	c.cond.Signal()
}

// wait waits for n notifications and subtracts them.
func (c *counter) wait(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n < n {
		c.cond.Wait()
	}
	c.n -= n
}
