
# The network of the pods takes over the adapter of this machine. EC2Launch keeps the routes to the
# services of AWS, such as that of the instance metadata, through that and through restarts.
$launch = "$env:ProgramFiles\Amazon\EC2Launch\EC2Launch.exe"
$version = [version] '0.0'
if ((Test-Path -Path $launch) -and "$(& $launch version)" -match '\d+(\.\d+){1,3}') {
    $version = [version] $Matches[0]
}
if ($version -lt [version] '2.0.2107') {
    $folder = "$env:USERPROFILE\Desktop\EC2Launchv2"
    $null = New-Item -ItemType Directory -Path $folder -Force
    $installer = "$folder\AmazonEC2Launch.msi"
    # A progress bar makes a download many times slower.
    $ProgressPreference = 'SilentlyContinue'
    Invoke-WebRequest -UseBasicParsing -OutFile $installer -Uri 'https://s3.amazonaws.com/amazon-ec2launch-v2/windows/amd64/latest/AmazonEC2Launch.msi'
    $setup = Start-Process -FilePath 'msiexec.exe' -Wait -PassThru `
        -ArgumentList '/i', "`"$installer`"", '/quiet', '/norestart'
    if ($setup.ExitCode -ne 0) { Write-Error "the installer ended with $($setup.ExitCode)" }
}
& $launch 'run-task' 'add-routes' '--persistent'
