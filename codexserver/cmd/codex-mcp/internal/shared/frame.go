package shared

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
)

// greeting is the first line of a server.
type greeting struct {
	Server  string `json:"server"` // always serverName
	Frame   int    `json:"frame"`  // the version of these frames
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Refused string `json:"refused,omitzero"` // why the server does not talk to this process
}

const (
	serverName   = "codex-mcp"
	frameVersion = 1
)

// What a client wants.
const (
	wantServe  = "serve"
	wantStatus = "status"
	wantStop   = "stop"
	wantLink   = "link" // of a process with a page
)

// hello is the first line of a client.
type hello struct {
	Want    string `json:"want"`
	Version string `json:"version,omitzero"` // to serve
	Origin
}

// Origin is where a client runs.
type Origin struct {
	// Folder is the client's working folder.
	Folder string `json:"folder,omitzero"`
	// Environ is the client's environment, NAME=value.
	Environ []string `json:"environ,omitzero"`
}

// reply is the server's answer to a hello. After a reply to serve without Refused and
// Ended, the client's messages follow.
type reply struct {
	Refused string  `json:"refused,omitzero"` // why the server does not serve the client
	Ended   bool    `json:"ended,omitzero"`   // the server makes way for a new one
	Status  *Status `json:"status,omitzero"`
	Link    string  `json:"link,omitzero"` // a new link to the approvals page
}

// Status is what a server does.
type Status struct {
	Name    string    `json:"name,omitzero"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	// Clients are connected, the first one first.
	Clients []Client `json:"connected"`
	// Working is how many clients, connected or gone, have a turn that runs.
	Working int `json:"working"`
	// Retired says that the server takes no new client.
	Retired bool `json:"retired,omitzero"`
	// Traits has a sum of each thing in which servers differ, by its name.
	Traits map[string]string `json:"traits,omitzero"`
	// About describes the server, such as its engine.
	About string `json:"about,omitzero"`
	// Page is the approvals page, of a process that offers links to it.
	Page *Page `json:"page,omitzero"`
}

// Client is a client of a server.
type Client struct {
	// PID is the process that relays the client, and Folder its working folder.
	PID    int    `json:"pid"`
	Folder string `json:"folder"`
	// Since is when it connected.
	Since time.Time `json:"since"`
}

// Page is the approvals page of a process.
type Page struct {
	// Address is the page's origin on this machine.
	Address string `json:"address"`
	// Folder is the process's working folder.
	Folder string `json:"folder"`
	// Threads are the ids of the conversations that it shows, the newest first, and Open is the
	// number of open questions.
	Threads []string `json:"threads"`
	Open    int      `json:"open"`
}

// maxFrame is the length of the longest frame. Linux allows an environment of 6 MiB by
// default.
const maxFrame = 16 << 20

func writeFrame(w io.Writer, frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// readFrame reads one line into frame.
func readFrame(r *bufio.Reader, frame any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxFrame {
			return errors.New("a line of the handshake is too long")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	if err := json.Unmarshal(line, frame); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}
