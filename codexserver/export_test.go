package codexserver

// Clients returns how many clients p keeps.
func (p *Principal) Clients() int { return len(p.clients.clients) }

// Guests returns how many clients of ServeFrom s keeps.
func (s *Server) Guests() int { return len(s.guests.clients) }
