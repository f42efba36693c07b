package main

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
)

// rawPeer is the lower bound. It sends lines of the same size in the same order, reads and
// builds no JSON, and matches answers by order.
var rawPeer = &peer{name: "raw", serve: serveRaw, dial: dialRaw}

func rawLine(kind byte, text string) []byte {
	pad := `"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"","count":0}}`
	return []byte(string(kind) + pad + text + "\n")
}

func serveRaw(s *stream) {
	r := bufio.NewReaderSize(s, 64<<10)
	n := 0
	for {
		line, err := readLine(r)
		if err != nil {
			return
		}
		switch line[0] {
		case 'e':
			must(s.Write(line))
		case 'a':
			line = bytes.Clone(line)
			must(s.Write(append(line[:80:80], '\n'))) // the question
			must(readLine(r))                         // its answer
			must(s.Write(line))
		case 'n':
			n++
		case 'c':
			must(s.Write(line))
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	line = bytes.Clone(line)
	rest, err := r.ReadBytes('\n')
	return append(line, rest...), err
}

type rawClient struct {
	w     io.Writer
	order sync.Mutex // held while writing, so that the queue has the order of the answers
	mu    sync.Mutex
	queue []chan int
}

func dialRaw(s *stream) caller {
	c := &rawClient{w: s}
	go func() {
		r := bufio.NewReaderSize(s, 64<<10)
		for {
			line, err := readLine(r)
			if err != nil {
				return
			}
			c.mu.Lock()
			ch := c.queue[0]
			c.queue = c.queue[1:]
			c.mu.Unlock()
			ch <- len(line)
		}
	}()
	return c
}

func (c *rawClient) roundTrip(line []byte) int {
	ch := make(chan int, 1)
	c.order.Lock()
	c.mu.Lock()
	c.queue = append(c.queue, ch)
	c.mu.Unlock()
	_, err := c.w.Write(line)
	c.order.Unlock()
	check(err)
	return <-ch
}

func (c *rawClient) echo(text string) (string, error) {
	c.roundTrip(rawLine('e', text))
	return text, nil
}

func (c *rawClient) ask(text string) error {
	ch := make(chan int, 2)
	c.mu.Lock()
	c.queue = append(c.queue, ch, ch)
	c.mu.Unlock()
	must(c.w.Write(rawLine('a', text)))
	<-ch
	must(c.w.Write([]byte(strings.Repeat("x", 60) + "\n")))
	<-ch
	return nil
}

func (c *rawClient) notify(text string) error {
	_, err := c.w.Write(rawLine('n', text))
	return err
}

func (c *rawClient) counted(int) error {
	c.roundTrip(rawLine('c', ""))
	return nil
}
