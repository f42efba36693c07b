package wsrpc_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
	"github.com/google/go-cmp/cmp"
)

// frame is the header of a frame without a mask.
type frame struct {
	Opcode byte // 1 begins a text, 0 continues one
	Final  bool
	Length uint64
}

// readFrames reads frames up to the end of a message.
func readFrames(r *bufio.Reader) (all []frame, err error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return all, err
		}
		f := frame{Opcode: head[0] & 0x0f, Final: head[0]&0x80 != 0, Length: uint64(head[1] & 0x7f)}
		var more [8]byte
		switch f.Length {
		case 126:
			_, err = io.ReadFull(r, more[6:])
		case 127:
			_, err = io.ReadFull(r, more[:])
		}
		if f.Length >= 126 {
			f.Length = binary.BigEndian.Uint64(more[:])
		}
		if err != nil {
			return all, err
		}
		if _, err := io.CopyN(io.Discard, r, int64(f.Length)); err != nil {
			return all, err
		}
		if all = append(all, f); f.Final {
			return all, nil
		}
	}
}

// Codex's app-server ends a connection at a frame of more than 16 MiB.
func TestLongMessagesAreSplit(t *testing.T) {
	const most = 8 << 20
	lengths := []int{most, most + 1, 2*most + 5}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for _, n := range lengths {
			if err := wsrpc.New(c).Write(context.Background(), [][]byte{[]byte(strings.Repeat("x", n))}); err != nil {
				t.Error(err)
			}
		}
	}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	var got [][]frame
	for range lengths {
		all, err := readFrames(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, all)
	}
	want := [][]frame{
		{{1, true, most}},
		{{1, false, most}, {0, false, 1}, {0, true, 0}},
		{{1, false, most}, {0, false, most}, {0, false, 5}, {0, true, 0}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
