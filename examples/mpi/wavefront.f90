! A wavefront over a grid of processes, as in a triangular solver: each receives from north and
! west, computes, and sends to south and east; then back again.
!
! Usage: wavefront [STEPS [PLANES]]. A step: PLANES planes from north-west to south-east, then
! PLANES planes back, and a sum at the end of every step.
program wavefront
  use mpi
  implicit none
  integer, parameter :: width = 64
  integer :: steps, planes, ierr, rank, nprocs, grid, step, plane
  integer :: dims(2), north, south, west, east
  integer :: status(MPI_STATUS_SIZE)
  logical :: periods(2)
  double precision :: row(width), column(width), local, total
  ! What is not given stays as it is: reading ends at the slash.
  character(len=32) :: texts(3) = '/'

  steps = 20
  planes = 16
  call get_command_argument(1, texts(1))
  call get_command_argument(2, texts(2))
  read (texts, *) steps, planes
  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, ierr)
  dims = 0
  periods = .false.
  call MPI_Dims_create(nprocs, 2, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid, ierr)
  call MPI_Comm_rank(grid, rank, ierr)
  call MPI_Cart_shift(grid, 0, 1, north, south, ierr)
  call MPI_Cart_shift(grid, 1, 1, west, east, ierr)
  row = rank
  column = rank
  do step = 1, steps
    do plane = 1, planes
      if (north /= MPI_PROC_NULL) call MPI_Recv(row, width, MPI_DOUBLE_PRECISION, north, 1, grid, status, ierr)
      if (west /= MPI_PROC_NULL) call MPI_Recv(column, width, MPI_DOUBLE_PRECISION, west, 2, grid, status, ierr)
      row = 0.5d0 * (row + column) + 1d-3
      column = row
      if (south /= MPI_PROC_NULL) call MPI_Send(row, width, MPI_DOUBLE_PRECISION, south, 1, grid, ierr)
      if (east /= MPI_PROC_NULL) call MPI_Send(column, width, MPI_DOUBLE_PRECISION, east, 2, grid, ierr)
    end do
    do plane = 1, planes
      if (south /= MPI_PROC_NULL) call MPI_Recv(row, width, MPI_DOUBLE_PRECISION, south, 3, grid, MPI_STATUS_IGNORE, ierr)
      if (east /= MPI_PROC_NULL) call MPI_Recv(column, width, MPI_DOUBLE_PRECISION, east, 4, grid, MPI_STATUS_IGNORE, ierr)
      row = 0.5d0 * (row + column) - 1d-3
      column = row
      if (north /= MPI_PROC_NULL) call MPI_Send(row, width, MPI_DOUBLE_PRECISION, north, 3, grid, ierr)
      if (west /= MPI_PROC_NULL) call MPI_Send(column, width, MPI_DOUBLE_PRECISION, west, 4, grid, ierr)
    end do
    local = sum(row)
    call MPI_Allreduce(local, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, grid, ierr)
  end do
  if (rank == 0) print '(a,f12.4)', 'sum', total
  call MPI_Finalize(ierr)
end program wavefront
