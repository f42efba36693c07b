//go:build models && unix

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// part returns the folder of what `.ci/run install` fetched for these tests.
func part(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(os.Getenv("CODEX_NPM"), name)
	if _, err := os.Stat(folder); err != nil {
		t.Fatalf("no %s in CODEX_NPM (.ci/run install puts it there): %v", name, err)
	}
	return folder
}

// child is a program that serves on loopback.
type child struct {
	t      *testing.T
	url    string
	output bytes.Buffer
	cmd    *exec.Cmd
	exited chan struct{}
}

// startChild starts a program and waits until a path answers with 200. The program ends with the test.
func startChild(t *testing.T, port, path, folder, program string, args ...string) *child {
	t.Helper()
	c := &child{t: t, url: "http://127.0.0.1:" + port, cmd: exec.Command(program, args...), exited: make(chan struct{})}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = folder, &c.output, &c.output
	must.OK(t, c.cmd.Start())
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), c.output.String())
		}
	})
	c.await("an answer of "+program, func() bool {
		answer, err := http.Get(c.url + path)
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
	return c
}

// kill ends the program at once.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// await waits until a condition is true.
func (c *child) await(what string, is func() bool) {
	c.t.Helper()
	for until := time.Now().Add(limit); !is(); {
		select {
		case <-c.exited:
			c.t.Fatalf("%s: the program has ended", what)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			c.t.Fatalf("%s: not in time", what)
		}
	}
}

// startLlama starts the real llama-server.
func startLlama(t *testing.T, port string, args ...string) *child {
	t.Helper()
	args = append([]string{"--host", "127.0.0.1", "--port", port, "--threads", "1", "--temp", "0", "--jinja", "--parallel", "1", "--slots"}, args...)
	return startChild(t, port, "/health", "", filepath.Join(part(t, "llama"), "llama-server"), args...)
}

// decoded returns how many tokens the only slot of a llama-server has of the answer that it is
// writing; ok is false if it is idle.
func (c *child) decoded() (n int, ok bool) {
	c.t.Helper()
	answer := must.Get(http.Get(c.url + "/slots"))(c.t)
	defer answer.Body.Close()
	var slots []struct {
		Busy bool `json:"is_processing"`
		Next []struct {
			Decoded int `json:"n_decoded"`
		} `json:"next_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&slots); err != nil || len(slots) != 1 {
		c.t.Fatalf("/slots: %d, %v", len(slots), err)
	}
	for _, next := range slots[0].Next {
		n = next.Decoded
	}
	return n, slots[0].Busy
}

// awaitAnswer waits until a llama-server is in the middle of an answer.
func (c *child) awaitAnswer() {
	c.t.Helper()
	c.await("an answer that has begun", func() bool {
		n, busy := c.decoded()
		return busy && n >= 20
	})
}

// startGateway starts Portkey's gateway.
func startGateway(t *testing.T) *child {
	t.Helper()
	port := freePort(t)
	node := filepath.Join(part(t, "typescript"), "node_modules", ".bin", "node")
	server := filepath.Join("node_modules", "@portkey-ai", "gateway", "build", "start-server.js")
	return startChild(t, port, "/", part(t, "models"), node, server, "--headless", "--port="+port)
}
