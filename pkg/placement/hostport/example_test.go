// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport_test

import (
	"fmt"

	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

func ExampleParse() {
	held, err := hostport.Parse("10250/tcp, 22/TCP, 127.0.0.1:9100/tcp, 8000-8010/udp")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hostport.Format(held))
	fmt.Println(held.Conflicts(hostport.Port{Protocol: hostport.UDP, Number: 8005}))
	fmt.Println(held.Conflicts(hostport.Port{Protocol: hostport.TCP, Number: 8005}))

	_, err = hostport.Parse("22/tcp,53")
	fmt.Println(err)
	// Output:
	// 22/tcp,8000-8010/udp,127.0.0.1:9100/tcp,10250/tcp
	// true
	// false
	// port 2 "53": no protocol in "53": write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp
}
