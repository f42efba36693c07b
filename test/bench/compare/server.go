package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// server is the measured program.
type server struct {
	cmd      *exec.Cmd
	provider *providertest.Server
	home     string
	pipe     io.Closer
	in       *json.Encoder
	out      *bufio.Scanner
	id       int
	took     time.Duration // from the start to the answer to initialize
}

// start starts a server whose model has a script.
func start(ctx context.Context, argv []string, script ...providertest.Turn) (*server, error) {
	home, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return nil, err
	}
	s := &server{home: home, provider: providertest.New(script...), cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *server) start() error {
	config := fmt.Sprintf("model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = "+
		"\"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n", s.provider.BaseURL())
	if err := os.WriteFile(filepath.Join(s.home, "config.toml"), []byte(config), 0o600); err != nil {
		return err
	}
	if s.cmd.Env == nil {
		s.cmd.Env = append(os.Environ(), "CODEX_HOME="+s.home)
	}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.pipe, s.in, s.out = in, json.NewEncoder(in), bufio.NewScanner(out)
	s.out.Buffer(nil, 64<<20)
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if err := s.send("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{"elicitation": map[string]any{}},
		"clientInfo": map[string]any{"name": "compare", "version": "1"},
	}); err != nil {
		return err
	}
	_, err = s.answers(1)
	s.took = time.Since(begin)
	return err
}

func (s *server) send(method string, params any) error {
	s.id++
	return s.in.Encode(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
}

// run makes n calls at once with the arguments, and returns the number of events until all are answered.
func (s *server) run(n int, arguments map[string]any) (events int, err error) {
	all := map[string]any{"prompt": "go"}
	maps.Copy(all, arguments)
	for range n {
		if err := s.send("tools/call", map[string]any{"name": "codex", "arguments": all}); err != nil {
			return 0, err
		}
	}
	return s.answers(n)
}

// answers reads until there are n answers. It accepts what the server asks.
func (s *server) answers(n int) (events int, err error) {
	for n > 0 && s.out.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Error  json.RawMessage
			Result struct{ IsError bool }
		}
		if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
			return events, err
		}
		switch {
		case m.Method != "" && m.ID != nil:
			if err := s.in.Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID,
				"result": map[string]any{"action": "accept", "content": map[string]any{}}}); err != nil {
				return events, err
			}
		case m.Method != "":
			events++
		case m.Error != nil || m.Result.IsError:
			return events, fmt.Errorf("answer: %.300s", s.out.Bytes())
		default:
			n--
		}
	}
	if n > 0 {
		return events, errors.Join(errors.New("the server ended"), s.out.Err())
	}
	return events, nil
}

// end ends the server in good order, and returns the CPU time of its life, with that of its children.
func (s *server) end() (time.Duration, error) {
	defer time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() }).Stop()
	if err := errors.Join(s.pipe.Close(), s.cmd.Wait()); err != nil {
		return 0, fmt.Errorf("the end: %w", err)
	}
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime(), nil
}

func (s *server) close() {
	if s.cmd.Process != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()
	}
	s.provider.Close()
	_ = os.RemoveAll(s.home)
}
