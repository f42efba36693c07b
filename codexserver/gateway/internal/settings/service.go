package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-json-experiment/json"
)

// ServiceFile is the file in $CODEX_HOME with the settings of this process as a part of a
// service. Workers do not get it.
const ServiceFile = "codex-mcp-gateway.toml"

// Service says how this process takes part in a service of several.
type Service struct {
	// NATS is how it reaches the others.
	NATS NATS `json:"nats"`
	// Link is how fronts reach nodes.
	Link Link `json:"link"`
	// Node describes it, if it runs workers.
	Node Node `json:"node"`
}

// Link are the settings of the connections between fronts and nodes.
type Link struct {
	// Address is where fronts reach this node, a host and a port. A node of a service needs it.
	Address string `json:"address"`
	// Listen is where it listens for them. Default: all addresses of the machine, with the port of Address.
	Listen string `json:"listen"`
	// CA, Cert and Key are files for TLS. Default: those of [NATS].
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// NATS are the settings of the connection to NATS.
type NATS struct {
	// URL is the servers' URLs, separated by commas. "" means a server in this process, that
	// nobody else can reach.
	URL string `json:"url"`
	// Credentials is a file with a user's JWT and seed. CA, Cert and Key are files for TLS.
	Credentials string `json:"credentials"`
	CA          string `json:"ca"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	// Roles are what this process does. Default: [Roles].
	Roles []string `json:"roles"`
	// Replicas is how many NATS servers store leases, nodes and the state of users. Default: as many as
	// store them already; for new ones 3 in a cluster, otherwise 1.
	Replicas int `json:"replicas"`
	// Lease is how long a user's lease lasts that is not renewed. All nodes must have the same.
	// Default: 15 seconds.
	Lease config.Duration `json:"lease"`
}

// Node are the settings of a process that runs workers.
type Node struct {
	// Name is for the operator. Default: the name of the machine.
	Name string `json:"name"`
}

// The roles of a process: to serve HTTP, and to run workers.
const (
	RoleFront = "front"
	RoleNode  = "node"
)

// Roles are all roles. Callers must not change it.
var Roles = []string{RoleFront, RoleNode}

const (
	defaultLease = 15 * time.Second
	minLease     = 3 * time.Second
)

// Has reports whether the process has a role.
func (n *NATS) Has(role string) bool { return slices.Contains(n.Roles, role) }

// Files returns the files that workers must not see.
func (s *Service) Files() []string {
	return slices.DeleteFunc(slices.Compact([]string{s.NATS.Credentials, s.NATS.Key, s.Link.Key}),
		func(file string) bool { return file == "" })
}

// LoadService reads codex-mcp-gateway.toml in home, which need not exist.
func LoadService(home string) (s Service, err error) {
	tables, err := config.ReadFile(filepath.Join(home, ServiceFile))
	if err != nil {
		return s, err
	}
	text, err := json.Marshal(tables)
	if err == nil {
		err = json.Unmarshal(text, &s, json.RejectUnknownMembers(true))
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", ServiceFile, err)
	}
	return s, s.setDefaults()
}

// ForWorkers returns those key=value arguments that are for workers. It leaves out the table http, which has hashes of
// tokens and which only the server needs, and fails for a key of [ServiceFile], which can be a password of NATS.
func ForWorkers(args []string) (rest []string, err error) {
	for _, arg := range args {
		switch table := table(arg); table {
		case "http":
		case "nats", "link", "node":
			return nil, fmt.Errorf("-c %s: only the file %s has this table", table, ServiceFile)
		default:
			rest = append(rest, arg)
		}
	}
	return rest, nil
}

// table returns the table of a key=value argument, such as http for http.hosts=['x']. The key may be quoted.
func table(arg string) string {
	key, _, _ := strings.Cut(arg, "=")
	key = strings.TrimSpace(key)
	if strings.HasPrefix(key, `"`) || strings.HasPrefix(key, "'") {
		key, _, _ = strings.Cut(key[1:], key[:1])
		return key
	}
	key, _, _ = strings.Cut(key, ".")
	return strings.TrimSpace(key)
}

func (s *Service) check() error {
	for server := range strings.SplitSeq(s.NATS.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		switch {
		case server == "":
		// without the error, which has the password of a URL
		case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls":
			return errors.New("nats.url: want URLs such as nats://127.0.0.1:4222 or tls://nats.example.com:4222, " +
				"separated by commas")
		// either makes the client ask for TLS
		case u.Scheme == "nats" && !webaddr.Loopback(u.Hostname()) && s.NATS.CA == "" && s.NATS.Cert == "":
			return fmt.Errorf("nats.url: others on the network could read and change the messages with %s, and so "+
				"act as any user; want tls://, or nats.ca", u.Host)
		}
	}
	for _, role := range s.NATS.Roles {
		if !slices.Contains(Roles, role) {
			return fmt.Errorf("nats.roles: %q is not one of %s", role, text.Or(Roles))
		}
	}
	for key, file := range map[string]string{
		"nats.credentials": s.NATS.Credentials, "nats.ca": s.NATS.CA, "nats.cert": s.NATS.Cert, "nats.key": s.NATS.Key,
		"link.ca": s.Link.CA, "link.cert": s.Link.Cert, "link.key": s.Link.Key,
	} {
		if file != "" && !filepath.IsAbs(file) {
			return fmt.Errorf("%s: %q is not an absolute path", key, file)
		}
	}
	if err := s.Link.check(); err != nil {
		return err
	}
	n := &s.NATS
	switch {
	case n.Roles != nil && len(n.Roles) == 0:
		return errors.New("nats.roles: empty; remove it for all roles")
	case n.URL == "" && (n.Credentials != "" || n.CA != "" || n.Cert != "" || n.Key != "" || n.Roles != nil ||
		n.Replicas != 0 || n.Lease != 0):
		return errors.New("nats.url: missing; the other keys of nats have no effect without it")
	case n.URL == "" && s.Link != Link{}:
		return errors.New("nats.url: missing; the keys of link have no effect without it")
	case (n.Cert == "") != (n.Key == ""):
		return errors.New("nats.cert and nats.key belong together: set both, or neither")
	case n.Replicas < 0 || n.Replicas > 5:
		return errors.New("nats.replicas: want 1 to 5")
	case n.Lease != 0 && time.Duration(n.Lease) < minLease:
		return fmt.Errorf("nats.lease: want at least %v", minLease)
	case s.Node.Name != "" && !principalName().MatchString(s.Node.Name):
		return errors.New("node.name: want a name of small letters, digits, - and _")
	}
	return nil
}

func (l *Link) check() error {
	for key, address := range map[string]string{"address": l.Address, "listen": l.Listen} {
		host, _, err := net.SplitHostPort(address)
		if address != "" && (err != nil || key == "address" && (host == "" || net.ParseIP(host).IsUnspecified())) {
			return fmt.Errorf("link.%s: %q: want a host and a port, such as m1.example.com:4520", key, address)
		}
	}
	if (l.CA == "") != (l.Cert == "") || (l.CA == "") != (l.Key == "") {
		return errors.New("link.ca, link.cert and link.key belong together: set all, or none")
	}
	return nil
}

var notInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9_-]+`) })

func (s *Service) setDefaults() error {
	if s.NATS.Roles == nil {
		s.NATS.Roles = slices.Clone(Roles)
	}
	if s.Link.CA == "" && s.NATS.CA != "" && s.NATS.Cert != "" {
		s.Link.CA, s.Link.Cert, s.Link.Key = s.NATS.CA, s.NATS.Cert, s.NATS.Key
	}
	if _, port, err := net.SplitHostPort(s.Link.Address); err == nil && s.Link.Listen == "" {
		s.Link.Listen = ":" + port
	}
	s.NATS.Lease = cmp.Or(s.NATS.Lease, config.Duration(defaultLease))
	if s.Node.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node.name: missing; this machine has no name: %w", err)
		}
		name = strings.Trim(notInName().ReplaceAllString(strings.ToLower(name), "-"), "-_")
		s.Node.Name = cmp.Or(name[:min(len(name), 63)], "node")
	}
	return nil
}
