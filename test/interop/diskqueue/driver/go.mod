module diskqueue-driver

go 1.21
