package shared

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/go-json-experiment/json"
)

// frame is a line of the handshake: the server's greeting, the client's hello, or the server's reply.
type frame struct {
	// Server is [serverName] in a greeting, and Frame the version of these frames.
	Server string `json:"server,omitzero"`
	Frame  int    `json:"frame,omitzero"`
	// Refused says why the server does not do it.
	Refused string `json:"refused,omitzero"`
	// Want is what a client wants, and From where a client runs that is to be served.
	Want string        `json:"want,omitzero"`
	From engine.Origin `json:"from,omitzero"`
	// Status is the reply to a client that is not to be served. Otherwise its messages follow.
	Status *Status `json:"status,omitzero"`
}

const (
	serverName   = "codex-mcp"
	frameVersion = 1
)

// What a process wants of another one.
const (
	Look  = "status" // at its [Status]
	Stop  = "stop"   // the end of a server with everything that it runs
	Link  = "link"   // a new link to its approvals page
	serve = "serve"
)

// Status is what a process does.
type Status struct {
	Name    string    `json:"name,omitzero"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	// Clients are connected, the first one first.
	Clients []Client `json:"connected"`
	// Working has a line for each turn that runs, also of a client that has gone.
	Working []string `json:"working"`
	// About describes the process, such as its engine.
	About string `json:"about,omitzero"`
	// Page is its approvals page, nil if it has none.
	Page *Page `json:"page,omitzero"`
	// Link is the reply to [Link]. Who has it can decide in the user's place.
	Link string `json:"link,omitzero"`
}

// Client is a client of a server: the process that relays it, its working folder, and since when it
// is connected.
type Client struct {
	PID    int       `json:"pid"`
	Folder string    `json:"folder"`
	Since  time.Time `json:"since"`
}

// Page is the approvals page of a process.
type Page struct {
	// Address is the page's origin on this machine.
	Address string `json:"address"`
	// Folder is the process's working folder.
	Folder string `json:"folder"`
	// Open is the number of open questions.
	Open int `json:"open"`
}

// Conn is a connection between two processes.
type Conn struct {
	*net.UnixConn
	in  *bufio.Reader
	pid int // of the other one
}

func newConn(c *net.UnixConn) *Conn { return &Conn{UnixConn: c, in: bufio.NewReader(c)} }

// Read implements [io.Reader].
func (c *Conn) Read(b []byte) (int, error) { return c.in.Read(b) }

// maxFrame is the length of the longest frame. Linux allows an environment of 6 MiB by
// default.
const maxFrame = 16 << 20

func (c *Conn) send(f *frame) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = c.Write(append(line, '\n'))
	return err
}

// receive reads a frame. The error of one that refuses says why.
func (c *Conn) receive() (f frame, err error) {
	var line []byte
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		var part []byte
		part, err = c.in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxFrame {
			return f, errors.New("a line of the handshake is too long")
		}
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return f, fmt.Errorf("handshake: %w", err)
	}
	if f.Refused != "" {
		err = errors.New("it refuses: " + f.Refused)
	}
	return f, err
}
